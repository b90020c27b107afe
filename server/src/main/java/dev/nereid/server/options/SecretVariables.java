package dev.nereid.server.options;

import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Environment variables with secrets. The server, its launcher, and the storages and caches of its distribution read
 * them. Static functions only.
 */
final class SecretVariables {
    private static final Set<String> NAMES = Set.of(
            "AWS_ACCESS_KEY_ID",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "JAVA_TOOL_OPTIONS", // passwords of key stores
            "JDK_JAVA_OPTIONS",
            "NEREID_CACHE_CONFIG",
            "NEREID_GRPC_RESTRICTED_PROTOCOL",
            "NEREID_HEADER", // of client commands, with the key of a restricted protocol
            "NEREID_HTTP_RESTRICTED_API",
            "NEREID_JAVA_OPTIONS",
            "TRITONCACHE_REDIS_PASSWORD",
            "TRITONCACHE_REDIS_USERNAME",
            "TRITON_CLOUD_CREDENTIAL_PATH");

    private SecretVariables() {}

    static Map<String, String> without(Map<String, String> variables) {
        return variables.entrySet().stream()
                .filter(variable -> !NAMES.contains(variable.getKey()))
                .collect(Collectors.toUnmodifiableMap(Map.Entry::getKey, Map.Entry::getValue));
    }
}
