package dev.nereid.backend.python.environment;

/**
 * An entry of a tar archive. Immutable.
 *
 * @param name the path as it is in the archive, not checked
 * @param size the number of bytes that follow; 0 but for files
 * @param mode the permissions, the low nine bits
 * @param modified when the file was changed, in seconds since 1970
 * @param link the target of a link as it is in the archive, not checked; else empty
 */
record TarEntry(String name, Kind kind, long size, int mode, long modified, String link) {
    /** The kinds of entries. */
    enum Kind {
        FILE,
        DIRECTORY,
        SYMBOLIC_LINK,
        HARD_LINK,
        /** A device, a pipe, or a form of files that is not read. */
        OTHER
    }
}
