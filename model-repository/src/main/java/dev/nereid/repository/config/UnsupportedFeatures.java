package dev.nereid.repository.config;

import inference.ModelConfig;
import java.util.ArrayList;
import java.util.List;

/** Refuses or lists settings of a configuration that this version does not support. Static functions only. */
public final class UnsupportedFeatures {
    private UnsupportedFeatures() {}

    /** Refuses models that would compute wrong responses without the feature. */
    public static void check(ModelConfig config) {
        BatchingStrategyFactory.refuseNative(config);
    }

    /** Lists settings that are accepted and have no effect. The model's responses are right without them. */
    public static List<String> ignored(ModelConfig config, boolean rateLimited) {
        List<String> settings = new ArrayList<>();
        if (!rateLimited && config.getInstanceGroupList().stream().anyMatch(group -> group.hasRateLimiter())) {
            settings.add("instance_group.rate_limiter");
        }
        return settings;
    }
}
