package dev.nereid.distribution.process;

import java.nio.file.Path;

/**
 * Directories of the installed server. Immutable.
 *
 * @param home the directory of the server: {@code plugins}, {@code examples}
 * @param temporary a directory for this user's temporary files, which need not exist
 */
public record InstallationPaths(Path home, Path temporary) {}
