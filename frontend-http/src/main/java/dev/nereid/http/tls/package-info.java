/** TLS options of the HTTP front end. */
@NullMarked
package dev.nereid.http.tls;

import org.jspecify.annotations.NullMarked;
