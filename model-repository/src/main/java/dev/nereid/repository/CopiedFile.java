package dev.nereid.repository;

/**
 * A file of a local copy of a model, as the remote storage lists it. Immutable.
 *
 * @param path its path in the model's directory
 * @param size its size in bytes
 * @param etag the ETag of its object
 */
public record CopiedFile(String path, long size, String etag) {}
