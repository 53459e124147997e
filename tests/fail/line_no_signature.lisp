(composite Add)
