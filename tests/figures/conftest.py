"""What tests of figures share."""

from tests.pictures import told_apart_in_gray as told_apart_in_gray
