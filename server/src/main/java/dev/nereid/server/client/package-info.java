/**
 * Requests of models to other models of the same server. Starting point: {@link dev.nereid.server.client.ModelClients}.
 */
@NullMarked
package dev.nereid.server.client;

import org.jspecify.annotations.NullMarked;
