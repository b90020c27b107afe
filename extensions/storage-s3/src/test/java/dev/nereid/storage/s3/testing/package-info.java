/** A server of the S3 protocol for tests. */
@NullMarked
package dev.nereid.storage.s3.testing;

import org.jspecify.annotations.NullMarked;
