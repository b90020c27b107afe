package dev.nereid.distribution.flags;

import dev.nereid.api.Quoted;
import dev.nereid.api.Spelling;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;

/**
 * Recognizes environment variables that set no flag: variables of Kubernetes, and misspelt ones. Static functions only.
 *
 * <p>Kubernetes sets variables for each Service of a namespace: for one called {@code nereid-http}, {@code
 * NEREID_HTTP_PORT=tcp://10.0.0.1:8000} and others, unless {@code enableServiceLinks} is {@code false}.
 */
final class FlagVariables {
    private static final String PREFIX = "NEREID_";

    /** The variables that the launchers read. */
    private static final Set<String> OF_LAUNCHERS = Set.of("NEREID_JAVA_OPTIONS", "NEREID_AOT_OUTPUT");

    private static final Pattern SERVICE_ADDRESS = Pattern.compile("(tcp|udp|sctp)://.*");
    private static final Pattern SERVICE_VARIABLE = Pattern.compile(
            "NEREID(_.*)?_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT_\\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)");

    private FlagVariables() {}

    /** Returns whether a value is the address of a Kubernetes Service, which no flag has. */
    static boolean isServiceAddress(String value) {
        return SERVICE_ADDRESS.matcher(value).matches();
    }

    /** Returns the line about a variable that is ignored because Kubernetes set it. */
    static String serviceNotice(String variable, String value) {
        return variable + ": '" + Quoted.text(value) + "' ignored: the address of a Kubernetes Service"
                + " (enableServiceLinks: false omits such variables)";
    }

    /** Returns a line for each variable that looks like a flag's and is not among those of all commands. */
    static List<String> unknown(Map<String, String> environment, Collection<String> known) {
        Set<String> names = new TreeSet<>(known);
        names.addAll(OF_LAUNCHERS);
        List<String> lines = new ArrayList<>();
        for (String variable : new TreeSet<>(environment.keySet())) {
            boolean isOfService = SERVICE_VARIABLE.matcher(variable).matches()
                    || isServiceAddress(environment.getOrDefault(variable, ""));
            if (variable.startsWith(PREFIX) && !names.contains(variable) && !isOfService) {
                lines.add(variable + ": ignored: no flag has this variable"
                        + Spelling.closest(variable, names)
                                .map(close -> " (did you mean " + close + "?)")
                                .orElse(""));
            }
        }
        return lines;
    }
}
