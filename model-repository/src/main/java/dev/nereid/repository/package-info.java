/**
 * Model repositories on disk: their models, versions and files.
 *
 * <p>Starting point: {@link dev.nereid.repository.ModelRepository}, which reads the directories.
 */
@NullMarked
package dev.nereid.repository;

import org.jspecify.annotations.NullMarked;
