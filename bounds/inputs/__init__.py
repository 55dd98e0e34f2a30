"""What users give: checked values, files and plug-ins; and the files that are written for them."""
