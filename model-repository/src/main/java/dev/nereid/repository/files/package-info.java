/**
 * The server's files on the disk: private directories, and private copies of model files.
 *
 * <p>Starting point: {@link dev.nereid.repository.files.FileCopies}.
 */
@NullMarked
package dev.nereid.repository.files;

import org.jspecify.annotations.NullMarked;
