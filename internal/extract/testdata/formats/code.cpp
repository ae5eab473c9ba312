namespace app {

// A widget.
template <typename T>
class Widget : public Base<T> {
public:
    Widget();
    int size() const { return 1; }
};

std::vector<int> Widget::items(const std::string& name) const {
    for (auto i : x) { y(i); }
    return {};
}

Widget::~Widget() {}

bool operator==(const A& a, const A& b) {
    return true;
}
}
