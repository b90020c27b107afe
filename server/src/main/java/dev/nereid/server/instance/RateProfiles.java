package dev.nereid.server.instance;

import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.rate.RateResource;
import inference.ModelInstanceGroup;
import inference.ModelRateLimiter;
import java.util.List;

/** Reads the rate limiter resources of an instance group. Static functions only. */
final class RateProfiles {
    private RateProfiles() {}

    /**
     * Returns the resources of each instance of a group. Numbers are unsigned, and limited to the range of {@code int}.
     */
    static RateProfile of(ModelInstanceGroup group) {
        ModelRateLimiter limiter = group.getRateLimiter();
        List<RateResource> resources = limiter.getResourcesList().stream()
                .map(resource -> new RateResource(resource.getName(), resource.getGlobal(), cut(resource.getCount())))
                .toList();
        return new RateProfile(cut(limiter.getPriority()), resources);
    }

    private static int cut(int unsigned) {
        return unsigned < 0 ? Integer.MAX_VALUE : unsigned;
    }
}
