/** TLS certificate and key files: reading, checking and reloading them. */
@NullMarked
package dev.nereid.api.tls;

import org.jspecify.annotations.NullMarked;
