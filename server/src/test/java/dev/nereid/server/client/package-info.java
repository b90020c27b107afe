/** Tests of requests of models to other models. */
@NullMarked
package dev.nereid.server.client;

import org.jspecify.annotations.NullMarked;
