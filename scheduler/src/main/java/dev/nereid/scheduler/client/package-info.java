/** What requests of models to other models need of the requests that cause them. */
@NullMarked
package dev.nereid.scheduler.client;

import org.jspecify.annotations.NullMarked;
