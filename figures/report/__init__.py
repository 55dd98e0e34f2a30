"""Reports: static HTML pages on the runs of a sweep or on a paper; the gallery is made by the same templates."""
