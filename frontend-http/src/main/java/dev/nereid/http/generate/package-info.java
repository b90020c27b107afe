/** The {@code generate} extension: reading requests, responses and server-sent events. */
@NullMarked
package dev.nereid.http.generate;

import org.jspecify.annotations.NullMarked;
