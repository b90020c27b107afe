/** Paths of files of models: which ones are allowed, and how clients see them. */
@NullMarked
package dev.nereid.api.file;

import org.jspecify.annotations.NullMarked;
