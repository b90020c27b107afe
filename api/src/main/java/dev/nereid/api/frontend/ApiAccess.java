package dev.nereid.api.frontend;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.security.MessageDigest;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Decides which requests may use which part of the protocols. Immutable, safe for use by any thread; front ends call
 * it once for each request.
 */
public final class ApiAccess {
    /** No restrictions. */
    public static final ApiAccess OPEN = new ApiAccess(new EnumMap<>(ApiGroup.class));

    private record Rule(String header, String secret) {}

    private final Map<ApiGroup, Rule> rules;

    private ApiAccess(Map<ApiGroup, Rule> rules) {
        this.rules = rules;
    }

    /**
     * Parses restrictions as users write them: {@code group[,group...]:header=secret}.
     *
     * @param restrictions the texts; empty for no restriction
     * @return the restrictions
     * @throws IllegalArgumentException if a text is not of this form, names a group that does not exist, or one that
     *     was restricted before
     */
    public static ApiAccess parse(List<String> restrictions) {
        return parse("protocol", restrictions);
    }

    /**
     * Parses restrictions as users write them: {@code group[,group...]:header=secret}.
     *
     * @param kind the word of errors for a group: {@code api} over HTTP, {@code protocol} over gRPC
     * @param restrictions the texts; empty for no restriction
     * @return the restrictions
     * @throws IllegalArgumentException as {@link #parse(List)}
     */
    public static ApiAccess parse(String kind, List<String> restrictions) {
        Map<ApiGroup, Rule> rules = new EnumMap<>(ApiGroup.class);
        for (String text : restrictions) {
            int colon = text.indexOf(':');
            int equal = text.indexOf('=', colon + 1);
            if (colon < 1 || equal < colon + 2) {
                throw new IllegalArgumentException("'" + text + "' (expected: group[,group...]:header=secret)");
            }
            Rule rule = new Rule(text.substring(colon + 1, equal), text.substring(equal + 1));
            for (String name : text.substring(0, colon).split(",", -1)) {
                ApiGroup group = ApiGroup.ofText(name)
                        .orElseThrow(() -> new IllegalArgumentException("unknown restricted " + kind + " '" + name
                                + "' (expected: one of " + Arrays.toString(ApiGroup.values()) + ")"));
                if (rules.put(group, rule) != null) {
                    throw new IllegalArgumentException(
                            "restricted " + kind + " '" + name + "' can not be specified in multiple config groups");
                }
            }
        }
        return new ApiAccess(rules);
    }

    /**
     * Decides whether a request may use a part of the protocol.
     *
     * @param group the part
     * @param headers returns the value of a header of the request, or {@code null}
     * @return the header that is missing or has the wrong value; empty if access is allowed
     */
    public Optional<String> missingHeader(ApiGroup group, Function<String, @Nullable String> headers) {
        Rule rule = rules.get(group);
        if (rule == null) {
            return Optional.empty();
        }
        String value = headers.apply(rule.header);
        boolean matches = value != null && MessageDigest.isEqual(value.getBytes(UTF_8), rule.secret.getBytes(UTF_8));
        return matches ? Optional.empty() : Optional.of(rule.header);
    }
}
