package dev.nereid.http.json;

import dev.nereid.api.Quoted;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Tracks the path of the member that is read, for errors. Confined to the thread that reads. */
public final class JsonPath {
    /** The members that stand where their object does; all others are parameters. */
    private static final Set<String> DIRECT =
            Set.of("name", "shape", "datatype", "data", "inputs", "outputs", "id", "parameters");

    private String list = "";
    private int item;
    private @Nullable String input;

    /** Enters an element of a list of tensors, such as {@code inputs}. */
    public void enter(String tensors, int index) {
        list = tensors;
        item = index;
    }

    /** Enters the member of a request to generate that is an input. */
    public void enterInput(String name) {
        input = name;
    }

    /** Leaves what was entered. */
    public void leave() {
        list = "";
        input = null;
    }

    /** Returns the path of a member of what was entered, such as {@code inputs[0].data}. */
    public String to(String member) {
        if (input != null) {
            return Quoted.text(input);
        }
        String parent = list.isEmpty() ? "" : list + "[" + item + "].";
        return parent + (DIRECT.contains(member) ? "" : "parameters.") + Quoted.text(member);
    }
}
