/** The demo: a server with the bundled models, and its requests. */
@NullMarked
package dev.nereid.distribution.demo;

import org.jspecify.annotations.NullMarked;
