/** HTTP/1.1 connections: accepting, limits, timeouts, pipelining and drain. */
@NullMarked
package dev.nereid.http.connection;

import org.jspecify.annotations.NullMarked;
