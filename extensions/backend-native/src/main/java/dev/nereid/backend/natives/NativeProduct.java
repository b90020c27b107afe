package dev.nereid.backend.natives;

/**
 * A framework; its native libraries are unpacked together. Immutable.
 *
 * @param name the name in errors, such as {@code TensorFlow}
 * @param prefix the beginning of the names of its directories in a cache, such as {@code tensorflow}: letters and digits
 * @param library the file name of the library by which a copy is found that a process has mapped, such as
 *     {@code libtensorflow_cc.so.2}
 * @param space the free space that unpacking needs, for errors, such as {@code 700 MB}
 */
public record NativeProduct(String name, String prefix, String library, String space) {
    /** Checks that the prefix, a part of file names, has lower-case letters and digits alone. */
    public NativeProduct {
        if (!prefix.matches("[a-z0-9]+")) {
            throw new IllegalArgumentException("prefix: " + prefix + " (expected: lower-case letters and digits)");
        }
    }

    /** Returns whether a directory of a cache has a name as its libraries get it, of whatever content. */
    boolean names(String directory) {
        return directory.matches(prefix + "-[0-9a-f]{8}-[0-9a-f]+");
    }

    /** Returns the beginning of the names of directories that are being written or removed. */
    String partialPrefix() {
        return "." + prefix + "-";
    }
}
