/** The response cache of the server: local, or from a plugin. */
@NullMarked
package dev.nereid.server.cache;

import org.jspecify.annotations.NullMarked;
