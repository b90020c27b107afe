/**
 * Model repositories in Amazon S3, and in stores that have its protocol.
 *
 * <p>Starting point: {@link dev.nereid.storage.s3.S3StorageProvider}.
 */
@NullMarked
package dev.nereid.storage.s3;

import org.jspecify.annotations.NullMarked;
