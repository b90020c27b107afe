/** Tests of the cache of responses. */
@NullMarked
package dev.nereid.server.cache;

import org.jspecify.annotations.NullMarked;
