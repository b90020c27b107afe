/**
 * Clients that others wrote, unchanged, against the assembled server: Apache Camel, curl, Python, and what Apache Flink
 * sends.
 *
 * <p>Starting point: {@link dev.nereid.compatibility.Echo}, the models that they ask.
 */
@NullMarked
package dev.nereid.compatibility;

import org.jspecify.annotations.NullMarked;
