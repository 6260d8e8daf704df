"""Request logs of the past, counted: from many files to what each adapter was asked for."""
