package dev.nereid.http.json;

/**
 * What a JSON input says of itself. Immutable, but for the array, which nobody changes.
 *
 * @param name the name of the input
 * @param datatype the name of the element type
 * @param dims the dimensions
 */
public @SuppressWarnings("ArrayRecordComponent") // Taken apart at once, never compared.
record InputMetadata(String name, String datatype, long[] dims) {}
