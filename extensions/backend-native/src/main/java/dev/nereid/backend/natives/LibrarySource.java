package dev.nereid.backend.natives;

import java.util.List;
import java.util.function.Predicate;

/**
 * Libraries of a framework that are in one directory of one jar. Immutable.
 *
 * @param artifact the file name of the jar, for errors, such as {@code tensorflow-core-native-…-linux-x86_64.jar}. A jar of
 *     another name is taken too
 * @param directories the names of the directories that the jar may have, in the order in which they are looked for, such as
 *     {@code org/tensorflow/internal/c_api/linux-x86_64/}; at least one, each with a slash at its end
 * @param libraries the file names of the libraries that the directory must have; at least one
 * @param others selects by file name which further libraries of the directory are unpacked. It sees the names of shared
 *     libraries alone, and is called by any thread
 */
public record LibrarySource(
        String artifact, List<String> directories, List<String> libraries, Predicate<String> others) {
    /**
     * Copies the lists.
     *
     * @throws IllegalArgumentException if a list is empty, or the name of a directory does not end with a slash
     */
    public LibrarySource {
        directories = List.copyOf(directories);
        libraries = List.copyOf(libraries);
        if (directories.isEmpty() || libraries.isEmpty()) {
            throw new IllegalArgumentException(artifact + ": no directories or no libraries (expected: one or more)");
        }
        for (String directory : directories) {
            if (!directory.endsWith("/")) {
                throw new IllegalArgumentException("directory: " + directory + " (expected: a slash at its end)");
            }
        }
    }

    /**
     * Describes named libraries in one directory, and no others.
     *
     * @param artifact the file name of the jar, for errors
     * @param directory the name of the directory in the jar, with a slash at its end
     * @throws IllegalArgumentException if there is no library, or the name of the directory does not end with a slash
     */
    public static LibrarySource named(String artifact, String directory, List<String> libraries) {
        return new LibrarySource(artifact, List.of(directory), libraries, _ -> false);
    }

    /** Returns whether a file in the directory is unpacked. */
    boolean selects(String name) {
        return libraries.contains(name)
                || ((name.contains(".so") || name.endsWith(".dylib") || name.endsWith(".dll")) && others.test(name));
    }
}
