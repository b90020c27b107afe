/**
 * Private directories, and private copies of files of models.
 *
 * <p>Starting point: {@link dev.nereid.repository.files.FileCopies}.
 */
@NullMarked
package dev.nereid.repository.files;

import org.jspecify.annotations.NullMarked;
