/**
 * Unchanged third-party clients against the assembled server. They are Apache Camel, curl, Python, and the requests of
 * Apache Flink.
 *
 * <p>Starting point: {@link dev.nereid.compatibility.Echo}, the models of their requests.
 */
@NullMarked
package dev.nereid.compatibility;

import org.jspecify.annotations.NullMarked;
