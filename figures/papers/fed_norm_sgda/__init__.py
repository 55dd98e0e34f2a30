"""The figures of Sharma, Panda & Joshi (2023), redrawn from our own runs; its theorems and claims against what we
measured."""
