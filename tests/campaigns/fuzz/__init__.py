"""Every reader against files made up for it: whole ones, damaged ones and rubbish (`make fuzz`)."""
