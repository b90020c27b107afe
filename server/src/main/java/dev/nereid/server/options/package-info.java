/**
 * Options of a server, one record for each concern. Starting point: {@link dev.nereid.server.options.ServerOptions}.
 */
@NullMarked
package dev.nereid.server.options;

import org.jspecify.annotations.NullMarked;
