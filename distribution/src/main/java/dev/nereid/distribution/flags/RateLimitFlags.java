package dev.nereid.distribution.flags;

import dev.nereid.server.options.RateLimitOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Flags of the rate limiter. Written by the command line reader, then only read. */
final class RateLimitFlags {
    private final List<RateLimitOptions.Resource> resources = new ArrayList<>();
    private boolean limited;

    /** Adds the flags that set these fields. */
    void declare(Flags flags) {
        flags.add(
                Flag.of(
                        "--rate-limit",
                        FlagValue.RATE_LIMIT,
                        "Whether instances take turns as instance_group.rate_limiter of their models says. off: each"
                                + " executes when it has something to do. execution_count: as far as the resources reach,"
                                + " those first that have executed least. Default: off.",
                        value -> limited = value),
                Flag.of(
                        "--rate-limit-resource",
                        FlagValue.RATE_RESOURCE,
                        "How much there is of a resource that instances take, on one device or, without it, on each. Of"
                                + " resources that are not named there is as much as the instance takes that takes the most."
                                + " May be given several times.",
                        resources::add));
    }

    /** Returns how turns are given; empty if they are not. */
    Optional<RateLimitOptions> options() {
        return limited ? Optional.of(new RateLimitOptions(resources)) : Optional.empty();
    }
}
