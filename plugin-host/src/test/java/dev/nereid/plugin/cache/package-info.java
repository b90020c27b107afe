/** The response cache of the server: local, or from a plugin. */
@NullMarked
package dev.nereid.plugin.cache;

import org.jspecify.annotations.NullMarked;
