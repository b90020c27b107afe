/** Tests of remote model repositories. */
@NullMarked
package dev.nereid.server.storage;

import org.jspecify.annotations.NullMarked;
