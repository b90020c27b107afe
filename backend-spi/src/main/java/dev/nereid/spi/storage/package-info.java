/**
 * The SPI of remote model repositories, used together with {@link dev.nereid.spi}.
 *
 * <p>Starting point: {@link dev.nereid.spi.storage.StorageProvider}, which leads to
 * {@link dev.nereid.spi.storage.ModelStorage}. A storage lists objects and reads them; local copies, limits and checks
 * of keys are the server's.
 *
 * <p>Interfaces marked <em>implemented by the server</em> may gain methods in a minor version of the SPI; interfaces
 * marked <em>implemented by storages</em> gain {@code default} methods only.
 */
@NullMarked
package dev.nereid.spi.storage;

import org.jspecify.annotations.NullMarked;
