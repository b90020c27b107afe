package dev.nereid.repository.config;

import inference.ModelConfig;

/**
 * A configuration as its owner wrote it. Immutable.
 *
 * @param config the content, nothing added
 * @param hasMaxBatchSize whether {@code max_batch_size} is written, also with the value 0, which the content has by
 *     default
 */
public record WrittenConfig(ModelConfig config, boolean hasMaxBatchSize) {
    /** The configuration of a model without a file. */
    public static final WrittenConfig NONE = new WrittenConfig(ModelConfig.getDefaultInstance(), false);
}
