/**
 * The backend SPI: all types that a backend of Nereid compiles against.
 *
 * <p>Starting points: a Java pre- or post-processing step is a function of {@code dev.nereid.spi.function}, one class with
 * one method. A backend for a whole framework implements {@link dev.nereid.spi.BackendProvider}, which leads to
 * {@link dev.nereid.spi.Backend}, {@link dev.nereid.spi.Model} and
 * {@link dev.nereid.spi.ModelInstance}; work arrives as a {@link dev.nereid.spi.Batch}.
 *
 * <p>Interfaces marked <em>implemented by the server</em> may gain methods in a minor version of the SPI; interfaces
 * marked <em>implemented by backends</em> gain {@code default} methods only. A backend's tests use the fakes of the
 * testkit instead of implementing the server's interfaces. Enums and sealed types are open: a backend must handle what
 * it does not know, with a {@code default}, by refusing the model or the request.
 */
@NullMarked
package dev.nereid.spi;

import org.jspecify.annotations.NullMarked;
