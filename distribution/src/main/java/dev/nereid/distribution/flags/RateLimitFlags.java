package dev.nereid.distribution.flags;

import dev.nereid.server.options.RateLimitOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Flags of the rate limiter. Written by the command line reader, then only read. */
final class RateLimitFlags {
    private final List<RateLimitOptions.Resource> resources = new ArrayList<>();
    private boolean limited;

    void declare(Flags flags) {
        flags.add("--rate-limit", FlagValue.RATE_LIMIT, limited, v -> limited = v)
                .help("Whether the rate limiter schedules executions by instance_group.rate_limiter. off: each"
                        + " instance executes when it has requests. execution_count: as resources allow, those first"
                        + " that have executed least.");
        flags.add("--rate-limit-resource", FlagValue.RATE_RESOURCE, resources::add)
                .help("The count of a resource that instances need, on one device or, without it, on each. Default"
                        + " for a resource that is not named: the highest count that an instance needs. May be given"
                        + " several times.");
    }

    /** Returns the options of the rate limiter; empty if it is off. */
    Optional<RateLimitOptions> options() {
        return limited ? Optional.of(new RateLimitOptions(resources)) : Optional.empty();
    }
}
