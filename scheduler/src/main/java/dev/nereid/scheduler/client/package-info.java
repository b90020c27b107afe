/** Requests of models to other models, and the requests that cause them. */
@NullMarked
package dev.nereid.scheduler.client;

import org.jspecify.annotations.NullMarked;
