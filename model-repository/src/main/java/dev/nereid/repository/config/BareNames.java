package dev.nereid.repository.config;

/** Names of JSON members without quotes, which the JSON of protobuf's C++ library may have. Static functions only. */
final class BareNames {
    private BareNames() {}

    /**
     * Writes bare names of members in quotes. Leaves everything else, texts included, as it is.
     *
     * @param json any text
     * @return the same text if it has no bare names
     */
    static String quoted(String json) {
        StringBuilder quoted = new StringBuilder(json.length() + 16);
        boolean mayBegin = false; // whether a name may begin here: behind { or a comma
        int at = 0;
        while (at < json.length()) {
            char next = json.charAt(at);
            int end = at + 1;
            if (next == '"') {
                end = endOfText(json, at);
            } else if (mayBegin && isName(next)) {
                end = endOfName(json, at);
                if (isFollowedByColon(json, end)) {
                    quoted.append('"').append(json, at, end).append('"');
                    at = end;
                    mayBegin = false;
                    continue;
                }
            }
            quoted.append(json, at, end);
            mayBegin = next == '{' || next == ',' || (mayBegin && Character.isWhitespace(next));
            at = end;
        }
        return quoted.toString();
    }

    private static int endOfText(String json, int start) {
        int at = start + 1;
        while (at < json.length() && json.charAt(at) != '"') {
            at += json.charAt(at) == '\\' ? 2 : 1;
        }
        return Math.min(at + 1, json.length());
    }

    private static int endOfName(String json, int start) {
        int at = start;
        while (at < json.length() && isName(json.charAt(at))) {
            at++;
        }
        return at;
    }

    private static boolean isName(char character) {
        return (character >= 'a' && character <= 'z')
                || (character >= 'A' && character <= 'Z')
                || (character >= '0' && character <= '9')
                || character == '_';
    }

    private static boolean isFollowedByColon(String json, int end) {
        int at = end;
        while (at < json.length() && Character.isWhitespace(json.charAt(at))) {
            at++;
        }
        return at < json.length() && json.charAt(at) == ':';
    }
}
