package dev.nereid.http.json;

/** Name, element type and shape of a JSON input. Immutable, but for the array, which is never changed. */
public @SuppressWarnings("ArrayRecordComponent") // Never compared.
record InputMetadata(String name, String datatype, long[] dims) {}
