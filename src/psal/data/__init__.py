"""Pictures to train, test and try on: data sets, crops and holes of them, samples."""
