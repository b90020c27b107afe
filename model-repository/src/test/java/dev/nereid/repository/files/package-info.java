/** Files of the server's own on the disk. */
@NullMarked
package dev.nereid.repository.files;

import org.jspecify.annotations.NullMarked;
