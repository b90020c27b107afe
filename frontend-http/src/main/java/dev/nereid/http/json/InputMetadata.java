package dev.nereid.http.json;

/**
 * Name, datatype and shape of a JSON input. Immutable, but for the array, which is never changed.
 *
 * @param datatype the name of the element type
 */
public @SuppressWarnings("ArrayRecordComponent") // Never compared.
record InputMetadata(String name, String datatype, long[] dims) {}
