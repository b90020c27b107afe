/** Files of the server's own on the disk. */
@NullMarked
package dev.nereid.server.files;

import org.jspecify.annotations.NullMarked;
