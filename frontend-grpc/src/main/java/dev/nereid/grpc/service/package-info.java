/** The unary methods, health checks and reflection. */
@NullMarked
package dev.nereid.grpc.service;

import org.jspecify.annotations.NullMarked;
