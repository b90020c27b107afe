/**
 * Files of the server's own on the disk: private directories, and private copies of files of models.
 *
 * <p>Starting point: {@link dev.nereid.server.files.FileCopies}.
 */
@NullMarked
package dev.nereid.server.files;

import org.jspecify.annotations.NullMarked;
