#include "rows/wanted_ranges.h"

#include <typeinfo>

#include <item_cmpfunc.h>
#include <item_func.h>
#include <item_strfunc.h>
#include <item_sum.h>
#include <sql_lex.h>
#include <sql_select.h>

#include "server/variables.h"

namespace quarry {

namespace {

// One table and no more in the whole statement (the server lists those of stored functions there too), not a view's or
// a derived one.
bool IsTheOnlyTable(const LEX* lex, const TABLE* table) {
  const TABLE_LIST* const only = lex->query_tables;
  return only != nullptr && only->next_global == nullptr && only->table == table && only->view == nullptr &&
         only->derived == nullptr && only->belong_to_view == nullptr && only->schema_table == nullptr &&
         only->table_function == nullptr && only->on_expr == nullptr;
}

// One SELECT without anything that makes rows of rows.
bool IsSimple(LEX* lex) {
  SELECT_LEX* const select = lex->first_select_lex();
  return select == lex->all_selects_list && select->next_select_in_list() == nullptr && select->join != nullptr &&
         select->first_inner_unit() == nullptr && select->next_select() == nullptr && select->tvc == nullptr &&
         select->group_list.elements == 0 && select->having == nullptr && select->join->having == nullptr &&
         select->window_specs.elements == 0 && select->olap == UNSPECIFIED_OLAP_TYPE &&
         select->cond_pushed_into_where == nullptr && select->cond_pushed_into_having == nullptr &&
         (select->options & (SELECT_DISTINCT | OPTION_BUFFER_RESULT)) == 0;
}

// Routines run statements of their own, with another LEX. VIRTUAL columns are computed by the server, outside of the
// statement's items.
bool IsPlainSelect(THD* thd, const TABLE* table) {
  LEX* const lex = thd->lex;
  return lex->sql_command == SQLCOM_SELECT && thd->spcont == nullptr && thd->in_sub_stmt == 0 &&
         lex->sroutines.records == 0 && lex->proc_list.elements == 0 && lex->with_clauses_list == nullptr &&
         table->vfield == nullptr && IsTheOnlyTable(lex, table) && IsSimple(lex);
}

// A number that is the same for every row, and free of side effects: a literal or a parameter.
bool IntegerOf(Item* item, int64_t* number) {
  if (item->type() != Item::CONST_ITEM || !item->basic_const_item() || item->cmp_type() != INT_RESULT) return false;
  *number = item->val_int();
  return !item->null_value && !(item->unsigned_flag && *number < 0);
}

// Walks everything that the statement evaluates. Each method answers: does all of it keep to what is in `requests_`?
class ItemWalk {
 public:
  ItemWalk(const TABLE* table, const Field* field, std::vector<RangeRequest>* requests)
      : table_(table), field_(field), requests_(requests) {}

  // What ORDER BY names stands among all_fields too: looked at again, for it costs nothing.
  bool Select(SELECT_LEX* select) {
    const JOIN* const join = select->join;
    return Items(&select->item_list) && Items(&select->join->all_fields) && Condition(select->where) &&
           Condition(join->conds) && Orders(select->order_list.first) && Orders(join->order) &&
           join->group_list == nullptr;
  }

 private:
  static constexpr uint32_t kDepthMax = 100;
  static constexpr size_t kRequestsMax = 16;

  bool Items(List<Item>* items) {
    List_iterator_fast<Item> it(*items);
    while (Item* const item = it++) {
      if (!Visit(item)) return false;
    }
    return true;
  }

  bool Condition(Item* item) { return item == nullptr || Visit(item); }

  bool Orders(const ORDER* order) {
    for (; order != nullptr; order = order->next) {
      if (!Visit(*order->item)) return false;
    }
    return true;
  }

  bool Arguments(const Item_func_or_sum* function) {
    for (uint i = 0; i < function->argument_count(); i++) {
      if (!Visit(function->arguments()[i])) return false;
    }
    return true;
  }

  bool Visit(Item* item) {
    if (item == nullptr || depth_ == kDepthMax) return false;
    depth_++;
    const bool keeps = VisitType(item);
    depth_--;
    return keeps;
  }

  bool VisitType(Item* item) {
    switch (item->type()) {
      case Item::CONST_ITEM:
      case Item::NULL_ITEM:
        return true;
      case Item::FIELD_ITEM:
        return IsAnotherColumn(item);
      case Item::FUNC_ITEM:
        return Function(static_cast<Item_func*>(item));
      case Item::COND_ITEM:
        return Items(static_cast<Item_cond*>(item)->argument_list());
      case Item::SUM_FUNC_ITEM:
        return Aggregate(static_cast<Item_sum*>(item));
      case Item::CACHE_ITEM:
        return Visit(static_cast<Item_cache*>(item)->get_example());
      case Item::REF_ITEM:
        return item->real_item() != item && Visit(item->real_item());
      default:
        return false;
    }
  }

  bool IsAnotherColumn(const Item* item) const {
    const Field* const field = static_cast<const Item_field*>(item)->field;
    return field != nullptr && field->table == table_ && field->field_index != field_->field_index;
  }

  bool Function(Item_func* function) {
    if (IsOfColumn(function) && Request(function)) return true;
    // It keeps what it compares elsewhere than in its arguments.
    if (function->functype() == Item_func::MULT_EQUAL_FUNC) return MultipleEquality(static_cast<Item_equal*>(function));
    return Arguments(function);
  }

  bool MultipleEquality(Item_equal* equality) {
    Item_equal_fields_iterator it(*equality);
    while (Item* const item = it++) {
      if (!Visit(item)) return false;
    }
    return true;
  }

  bool Aggregate(Item_sum* sum) {
    switch (sum->sum_func()) {
      case Item_sum::COUNT_FUNC:
      case Item_sum::SUM_FUNC:
      case Item_sum::AVG_FUNC:
      case Item_sum::MIN_FUNC:
      case Item_sum::MAX_FUNC:
        return Arguments(sum);
      default:
        return false;
    }
  }

  // f(column, ...), the column by itself.
  bool IsOfColumn(const Item_func* function) const {
    if (function->argument_count() == 0) return false;
    const Item* const first = function->arguments()[0];
    if (typeid(*first) != typeid(Item_field)) return false;
    const Field* const field = static_cast<const Item_field*>(first)->field;
    return field != nullptr && field->table == table_ && field->field_index == field_->field_index;
  }

  // The very classes, for one that derives from them may do something else.
  bool Request(const Item_func* function) {
    const std::type_info& type = typeid(*function);
    if (type == typeid(Item_func_octet_length) || type == typeid(Item_func_bit_length) ||
        type == typeid(Item_func_isnull) || type == typeid(Item_func_isnotnull)) {
      return true;
    }
    if (type == typeid(Item_func_char_length)) return field_->charset()->mbmaxlen == 1;
    RangeRequest request;
    Item** const arguments = function->arguments();
    if (type == typeid(Item_func_left)) {
      if (!IntegerOf(arguments[1], &request.length)) return false;
    } else if (type == typeid(Item_func_right)) {
      if (!IntegerOf(arguments[1], &request.length)) return false;
      request.position = -std::max<int64_t>(request.length, 0);
    } else if (type == typeid(Item_func_substr)) {
      if (!IntegerOf(arguments[1], &request.position)) return false;
      if (function->argument_count() == 3 && !IntegerOf(arguments[2], &request.length)) return false;
    } else {
      return false;
    }
    if (std::find(requests_->begin(), requests_->end(), request) != requests_->end()) return true;
    if (requests_->size() == kRequestsMax) return false;
    requests_->push_back(request);
    return true;
  }

  const TABLE* const table_;
  const Field* const field_;
  std::vector<RangeRequest>* const requests_;
  uint32_t depth_ = 0;
};

}  // namespace

bool FindWantedRanges(TABLE* table, const Field* field, std::vector<RangeRequest>* requests) {
  requests->clear();
  THD* const thd = table->in_use;
  if (thd == nullptr || thd != current_thd || !RangePushdown(thd) || !IsPlainSelect(thd, table)) return false;
  return ItemWalk(table, field, requests).Select(thd->lex->first_select_lex());
}

}  // namespace quarry
